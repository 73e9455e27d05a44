"""`python -m streamapp` is `grove`."""

from streamapp.cli import main

if __name__ == "__main__":
    main()
