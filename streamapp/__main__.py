"""`python -m streamapp` is `grove`."""

import sys

from streamapp.cli import main

if __name__ == "__main__":
    sys.exit(main())
