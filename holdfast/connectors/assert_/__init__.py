"""Assert: a sink that fails the job unless its rows and tables are as the rules say."""
