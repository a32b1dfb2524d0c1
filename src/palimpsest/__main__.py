"""`python -m palimpsest` is the command `palimpsest`; DVC's stages call it this way."""

import sys

from palimpsest.cli import main

sys.exit(main())
