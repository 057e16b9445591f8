//! `libsovia.so`: what an unmodified program finds in front of the C library.
