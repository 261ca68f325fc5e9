"""Automatic memories: when they are due, who writes them, and when they no longer hold (SPEC.md section 9).
"""
