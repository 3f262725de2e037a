//go:build full

package storage

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/aws"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
)

// Full says whether s3, gs and azblob are part of the program.
const Full = true

// openCloud opens a bucket. Credentials come from the environment.
func openCloud(ctx context.Context, l Location) (*blob.Bucket, error) {
	u, err := url.Parse(l.bucketURL())
	if err != nil {
		return nil, fmt.Errorf("its URL cannot be read: %w", err)
	}
	if l.Scheme == "gs" && os.Getenv("STORAGE_EMULATOR_HOST") == "" && l.parameters.Get("anonymous") == "" {
		// The driver would print a warning to the standard output and go on without.
		if _, err := gcp.DefaultCredentials(ctx); err != nil {
			return nil, err
		}
	}
	if l.Scheme == "s3" {
		return openS3(ctx, l, u.Query())
	}
	return blob.DefaultURLMux().OpenBucketURL(ctx, u)
}

// openS3 opens a bucket as the driver's own opener of URLs does, but the SDK logs nothing: errors say what is wrong.
func openS3(ctx context.Context, l Location, parameters url.Values) (*blob.Bucket, error) {
	pathStyle := parameters.Get("use_path_style") == "true"
	parameters.Del("use_path_style")
	settings, err := aws.V2ConfigFromURLParams(ctx, parameters)
	if err != nil {
		return nil, err
	}
	if parameters.Get("anonymous") == "" {
		// The credentials of these settings log to the standard error, and no parameter says otherwise.
		quiet, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}),
			config.WithRegion(settings.Region), config.WithSharedConfigProfile(parameters.Get("profile")))
		if err != nil {
			return nil, err
		}
		settings.Credentials = quiet.Credentials
	}
	settings.Logger = logging.Nop{}
	client := s3.NewFromConfig(settings, func(o *s3.Options) { o.UsePathStyle = pathStyle })
	return s3blob.OpenBucket(ctx, client, l.Bucket, nil)
}
