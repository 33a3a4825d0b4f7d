"""Tests of every package, by kind: unit, property, logic, simulation, wire, tidy."""
