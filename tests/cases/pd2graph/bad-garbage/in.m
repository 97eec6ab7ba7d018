PK nonsense
