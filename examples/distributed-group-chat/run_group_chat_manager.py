"""Conducts group chats and shows them in a browser."""

import sys
from pathlib import Path

from septet.cli.main import main

if __name__ == "__main__":
    config = str(Path(__file__).with_name("config.yaml"))
    sys.argv[1:] = ["web", "--port", "8001", "--config", config, *sys.argv[1:]]
    main()
