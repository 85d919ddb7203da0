#ifdef __cplusplus
}

/** A struct of options or results with its size set and zeros elsewhere. */
template <class Struct>
inline Struct tn_init() {
  Struct made = Struct();
  made.size = sizeof(Struct);
  return made;
}
#endif

#endif /* TENON_CLIENT_H */
