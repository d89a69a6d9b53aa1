# SPDX-License-Identifier: MIT
"""A module."""
