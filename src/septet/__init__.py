"""Septet: a team of seven agents that builds what you ask for until checks prove that it works."""
