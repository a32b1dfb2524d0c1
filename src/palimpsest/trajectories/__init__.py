"""From a human document to its versions v0 to v8: what is revised, by whom, and what came back."""
