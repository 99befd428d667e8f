"""The tools that move code: what they change, and what they leave."""
