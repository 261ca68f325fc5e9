"""The dynamic part: Story Cards, History and Memory Bank (SPEC.md section 4)."""
