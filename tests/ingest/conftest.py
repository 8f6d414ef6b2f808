from hypothesis import settings

settings.register_profile("ingest", deadline=None)  # the first Arrow array of a process loads pandas: 2 s
settings.load_profile("ingest")
