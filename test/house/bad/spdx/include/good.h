/* A header. */
/* SPDX-License-Identifier: MIT */
