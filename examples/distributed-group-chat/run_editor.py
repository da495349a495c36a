"""Serves the editor's turns."""

import sys
from pathlib import Path

from septet.cli.main import main

if __name__ == "__main__":
    config = str(Path(__file__).with_name("config.yaml"))
    sys.argv[1:] = ["join", "--as", "editor", "--config", config, *sys.argv[1:]]
    main()
