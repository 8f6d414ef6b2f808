"""Plain builds of the same service, to compare with: what people write first, just as durable."""
