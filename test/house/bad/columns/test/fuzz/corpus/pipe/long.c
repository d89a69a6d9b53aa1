/* Data: what a fuzzer has found stays as it was found, however long its lines are, and whatever it is called. */
