# Pictures that a script draws, to be sourced.
# shellcheck shell=bash

picture() { # SEED: a BMP file of 8 x 8 pixels
  local body= byte i
  for ((i = 1; i <= 192; i++)); do
    printf -v byte '\\x%02x' $((i * i * $1 % 256))
    body+=$byte
  done
  printf 'BM\xf6\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x08\0\0\0\x08\0\0\0\x01\0\x18\0\0\0\0\0\xc0\0\0\0'
  printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  printf '%b' "$body"
}
