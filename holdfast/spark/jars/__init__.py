"""What of Holdfast runs inside the JVM."""
