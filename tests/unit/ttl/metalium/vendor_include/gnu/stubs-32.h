// glibc of 32-bit programs says here what it lacks; without it a header of the vendor is not reached.
