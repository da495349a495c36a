"""`python -m septet`."""

from septet.cli.main import main

if __name__ == "__main__":
    main()
