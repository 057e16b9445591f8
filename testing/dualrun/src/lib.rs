//! Small programs, one a call or behaviour, each run natively and under sovia: the outcome must be the same, down to errno.
#![forbid(unsafe_code)]
