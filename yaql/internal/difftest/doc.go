// Package difftest compares the engine with the Python reference on random expressions. It has tests only: they
// generate expressions and documents from a grammar, ask both engines and expect the same value or the same
// class of error.
//
// The reference is Debian's python3-yaql; without it the test is skipped. $DROVER_YAQL_DIFF sets the number of
// cases, 2,000 unless set, and $DROVER_YAQL_SEED the first random seed.
package difftest
