//! Life, lines 62 to 66 of the isolation suite: whoever dies, nothing is left behind.
// Taken: another engineer writes this suite at the moment.
