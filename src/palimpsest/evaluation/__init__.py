"""From predictions to numbers: levels, thresholds, metrics, and their uncertainty."""
