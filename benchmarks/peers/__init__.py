"""Programs that this one is compared with: each in an environment of its own, on the same inputs, in the same run.

`environment.py` makes the environments, `process.py` talks to a script that runs in one; `scripts/` has those scripts,
`requirements/` the pinned versions.
"""

from benchmarks.peers.environment import PeerMissingError
from benchmarks.peers.process import Peer, PeerFailedError, PeerTooSlowError

__all__ = ["Peer", "PeerFailedError", "PeerMissingError", "PeerTooSlowError"]
