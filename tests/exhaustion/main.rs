//! Exhaustion, lines 52 to 56 of the isolation suite: what a sandbox uses up, only it lacks.
// Taken: another engineer writes this suite at the moment.
