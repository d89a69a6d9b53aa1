/* Two edges.
 * E1 go: stored (release), loaded (acquire).
 * E2 come: stored (release), loaded (acquire). */
