"""The memory-management environments `AMemGymMemory-v0` and `AMemGymSlots-v0`."""
