"""`python -m streamapp.inspection`: see the package."""

from streamapp.inspection.server import main

if __name__ == "__main__":
    main()
