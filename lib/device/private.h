/* What the files of lib/device share with each other and with nobody else. */
#ifndef RAMPIPE_DEVICE_PRIVATE_H
#define RAMPIPE_DEVICE_PRIVATE_H

#include "rampipe/device.h"

extern const char device_shipped[];
extern const uint64_t device_shipped_size;

#endif
