//! `berth serve` itself: what it refuses to start with, its sockets, backups.
