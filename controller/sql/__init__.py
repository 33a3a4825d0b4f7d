"""MySQL text to plans. One compiler pass per file; `plan.py` is what comes out."""
