"""A module."""



# SPDX-License-Identifier: MIT
