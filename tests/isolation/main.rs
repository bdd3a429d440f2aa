//! The isolation suite: each test runs something hostile inside and looks from the host. The numbers are those
//! of the design's list of walls.

mod smoke;
