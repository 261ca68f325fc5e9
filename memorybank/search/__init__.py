"""Search: exact neighbours, their order, and the index that follows the database (SPEC.md sections 4 and 9).

Reading order: `answer.py` (from the query to the results), `ranking.py` (their order), `live_index.py` (the index in
step with the database), `index.py` over FAISS and `index_exact.py` (its plain twin, which defines the answer),
`vectors.py` (checks and bytes). Importing this package loads nothing.
"""
