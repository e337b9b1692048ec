"""Becomes the program in its arguments: msrun gives every other file than python's to Python."""
import os
import sys

os.execvp(sys.argv[1], sys.argv[1:])
