"""`python -m streamapp.tools.inspection`: see the package."""

from streamapp.tools.inspection.server import main

if __name__ == "__main__":
    main()
