"""One file per step: `0001_…`, `0002_…`. A step that was released is never changed."""
