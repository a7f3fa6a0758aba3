//! Host library of Foreshorten.
