"""Search: by meaning and by words, and the indexes that follow the database (SPEC.md sections 4 and 9).

Reading order: `answer.py` (from the query to the results), `query.py` (what is looked for) with `function_words.py`,
`ranking.py` (the order), `live_index.py` (the indexes in step with the database), `index.py` over FAISS and
`index_exact.py` (its plain twin, which defines the answer), `lexical.py` (BM25) over `postings.py`, `duplicates.py`,
`vectors.py`. Importing this package loads nothing.
"""
