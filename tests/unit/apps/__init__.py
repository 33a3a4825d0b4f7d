"""Tests of the example applications."""
