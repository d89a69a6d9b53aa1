/* The edges of this room.
 * Edges: E1 arrive: the writer stores payload, then seq (release); the reader loads seq (acquire), then payload.
 * E2 sleepers: named at one end only, see E1.
 * E3 report: the writer stores it, then V (release);
 *    the reader loads V (acquire): here both ends acquire.
 *
 * E5 leave: defined here,
 * E5 leave: and here again.
 * The text of E9 is missing; E4M3 is a type.
 * E6 complete: two loads (acquire) and nothing else. */
