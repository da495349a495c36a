"""Starts the host and listens for members."""

import sys
from pathlib import Path

from septet.cli.main import main

if __name__ == "__main__":
    config = str(Path(__file__).with_name("config.yaml"))
    sys.argv[1:] = ["host", "--config", config, *sys.argv[1:]]
    main()
