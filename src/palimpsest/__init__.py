"""palimpsest: reproducible experiments on AI-text detection."""
