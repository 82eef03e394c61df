// Weights go by once for each block of columns, and those of one segment do not fit into a cache.
#pragma once

// Asks for what is this much further on: a processor's own look-ahead ends at each page, 4 KiB on most.
inline void ask_ahead(const void *weight) {
  constexpr int AHEAD_BYTES = 4096;
  __builtin_prefetch(static_cast<const char *>(weight) + AHEAD_BYTES);
}
