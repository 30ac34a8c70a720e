"""The one error of this package."""


class ClusterError(Exception):
    """What went wrong and what to do, in words for the person who typed the command."""
