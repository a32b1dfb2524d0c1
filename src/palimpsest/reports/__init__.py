"""Tables from the runs of the MLflow store."""
