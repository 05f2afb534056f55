"""What tests of several folders share: builders, stages, stand-ins and what seeds say."""
