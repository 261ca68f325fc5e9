"""The story that memories are written from: its log, and what becomes of memories when it changes (SPEC.md section 9).

Reading order: `log.py` (actions and their hashes, pure), `change.py` (the log as it stands now, memories that become
stale or valid again), `work.py` (what is due, claimed, written), `branching.py`.
"""
