"""Everything that starts, sets up or asks the JVM."""
